#include "source/s3_answer.h"

#include "source/xml_element.h"

bool s3_answer_next(struct text *rest, struct s3_object *out_object)
{
    struct text contents;
    struct text size;
    struct error error;
    return xml_element_cut(*rest, "Contents", &contents, rest) &&
           xml_element_find(contents, "Key", &out_object->key) &&
           xml_element_find(contents, "Size", &size) &&
           text_parse_u64(text_trim(size), &out_object->size, &error) == 0;
}
