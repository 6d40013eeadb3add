/* What the parts of the API's schemas share. */
#pragma once

#include "client/api.h"

enum { API_WORDS_MAX = 2048, API_LIST_MAX = 1000 };

#define FIELD(name_, kind_, struct_, member_)                                                      \
    {                                                                                              \
        (name_), (kind_), offsetof(struct struct_, member_)                                        \
    }
#define LONG_TEXT(name_, struct_, member_)                                                         \
    {                                                                                              \
        (name_), JSON_TEXT, offsetof(struct struct_, member_), .size_max = API_WORDS_MAX           \
    }
#define NEEDED(name_, kind_, struct_, member_)                                                     \
    {                                                                                              \
        (name_), (kind_), offsetof(struct struct_, member_), .is_required = true                   \
    }
#define LIST(name_, struct_, member_, schema_)                                                     \
    {                                                                                              \
        (name_), JSON_ARRAY, offsetof(struct struct_, member_), .size_max = API_LIST_MAX,          \
                                                                .schema = (schema_)                \
    }
#define PART(name_, struct_, member_, schema_)                                                     \
    {                                                                                              \
        (name_), JSON_OBJECT, offsetof(struct struct_, member_), .schema = (schema_)               \
    }
#define PAGE_FIELDS(schema_)                                                                       \
    {                                                                                              \
        LIST("items", api_page, items, (schema_)),                                                 \
            FIELD("next_cursor", JSON_TEXT, api_page, next_cursor),                                \
    }
