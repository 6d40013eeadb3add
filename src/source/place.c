#include "source/place.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum { BUCKET_SIZE_MIN = 3, BUCKET_SIZE_MAX = 63, HOST_SIZE_MAX = 260 };

static const struct place_scheme {
    const char *name;
    enum place_kind kind;
    bool is_secure;
    bool has_other_port; /* the port is of a protocol that is not spoken here */
} schemes[] = {
    {"file", PLACE_FILE, false},       {"http", PLACE_HTTP, false},
    {"https", PLACE_HTTP, true},       {"s3", PLACE_S3, true},
    {"hdfs", PLACE_HDFS, false, true}, {"webhdfs", PLACE_HDFS, false},
    {"swebhdfs", PLACE_HDFS, true},
};
enum { SCHEME_COUNT = sizeof(schemes) / sizeof(*schemes) };

/* The part before "://", and what follows. */
static bool cut_scheme(struct text address, struct text *out_scheme, struct text *out_rest)
{
    size_t size = 0;
    while (size < address.size && (isalnum((unsigned char)address.data[size]) ||
                                   (size && strchr("+-.", address.data[size]))))
        size++;
    const struct text rest = {address.data + size, address.size - size};
    if (size < 2 || !text_starts_with(rest, TEXT("://")))
        return false;
    *out_scheme = (struct text){address.data, size};
    *out_rest = (struct text){rest.data + 3, rest.size - 3};
    return true;
}

bool place_is_address(struct text text)
{
    struct text scheme;
    struct text rest;
    return cut_scheme(text, &scheme, &rest) && !text_is(scheme, "peer");
}

static const struct place_scheme *find_scheme(struct text name)
{
    for (size_t i = 0; i < SCHEME_COUNT; i++)
        if (name.size == strlen(schemes[i].name) &&
            strncasecmp(name.data, schemes[i].name, name.size) == 0)
            return &schemes[i];
    return NULL;
}

/* ---- Its parts ------------------------------------------------------------------------------- */

static int take_hash(struct text fragment, struct place *place, struct error *error)
{
    const struct text prefix = TEXT("sha256=");
    if (!text_starts_with(fragment, prefix) ||
        text_hex_decode((struct text){fragment.data + prefix.size, fragment.size - prefix.size},
                        place->hash, sizeof(place->hash), error) < 0)
        return error_set(error, ERROR_INVALID,
                         "what follows the # of an address must be sha256= and 64 hex digits");
    place->has_hash = true;
    return 0;
}

static int check_bucket(struct text bucket, struct error *error)
{
    bool is_fine = bucket.size >= BUCKET_SIZE_MIN && bucket.size <= BUCKET_SIZE_MAX &&
                   isalnum((unsigned char)bucket.data[0]) &&
                   isalnum((unsigned char)bucket.data[bucket.size - 1]);
    for (size_t i = 0; i < bucket.size; i++) {
        const char c = bucket.data[i];
        is_fine = is_fine && (islower((unsigned char)c) || isdigit((unsigned char)c) || c == '-' ||
                              (c == '.' && bucket.data[i - 1] != '.'));
    }
    return is_fine ? 0
                   : error_set(error, ERROR_INVALID,
                               "s3:// must be followed by a bucket, 3 to 63 small letters, digits, "
                               "dots and hyphens, and a path");
}

/* libcurl reads the host itself; this keeps out what could mean something else to it. */
static int check_host(struct text authority, struct error *error)
{
    bool is_fine = authority.size > 0 && authority.size <= HOST_SIZE_MAX;
    for (size_t i = 0; i < authority.size; i++) {
        const unsigned char c = (unsigned char)authority.data[i];
        if (c == '@')
            return error_set(error, ERROR_INVALID,
                             "an address must not hold a user name or password");
        is_fine = is_fine && (isalnum(c) || strchr(".-_:[]", c));
    }
    return is_fine ? 0 : error_set(error, ERROR_INVALID, "the address names no host");
}

/* What is sent as it stands is printable ASCII; what is encoded first, any plain text. */
static int check_letters(const struct place *place, struct text address, struct error *error)
{
    bool is_fine = text_is_plain(address);
    for (size_t i = 0; place->kind == PLACE_HTTP && i < address.size; i++) {
        const unsigned char c = (unsigned char)address.data[i];
        is_fine = is_fine && c > ' ' && c < 0x7f && !strchr("\"<>\\^`{|}", c);
    }
    return is_fine ? 0
                   : error_set(error, ERROR_INVALID,
                               "the address has characters that must be written as %%XX");
}

static void cut_path(struct text rest, struct place *place)
{
    const char *slash = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
    const size_t size = slash ? (size_t)(slash - rest.data) : rest.size;
    place->authority = (struct text){rest.data, size};
    place->path = (struct text){rest.data + size, rest.size - size};
    if (place->kind == PLACE_HTTP) {
        struct text path;
        if (text_cut(place->path, '?', &path, &place->query))
            place->path = path;
    }
}

static struct text without_port(struct text authority)
{
    const char *colon = authority.size ? memrchr(authority.data, ':', authority.size) : NULL;
    const char *bracket = authority.size ? memrchr(authority.data, ']', authority.size) : NULL;
    if (!colon || (bracket && colon < bracket))
        return authority;
    return (struct text){authority.data, (size_t)(colon - authority.data)};
}

/* Only a hash is cut off a path that may hold a # itself. */
static int cut_hash(struct text *rest, struct place *place, struct error *error)
{
    struct text head;
    struct text fragment;
    const struct text mark = TEXT("#sha256=");
    if (place->kind == PLACE_HTTP) {
        if (!text_cut(*rest, '#', &head, &fragment))
            return 0;
        *rest = head;
        return take_hash(fragment, place, error);
    }
    const char *found = rest->size ? memmem(rest->data, rest->size, mark.data, mark.size) : NULL;
    if (!found)
        return 0;
    fragment = (struct text){found + 1, rest->size - (size_t)(found + 1 - rest->data)};
    rest->size = (size_t)(found - rest->data);
    return take_hash(fragment, place, error);
}

int place_parse(struct text address, struct place *out_place, struct error *error)
{
    struct place place = {0};
    struct text name;
    struct text rest;
    if (address.size > PLACE_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "the address is longer than %d bytes",
                         PLACE_SIZE_MAX);
    const struct place_scheme *scheme =
        cut_scheme(address, &name, &rest) ? find_scheme(name) : NULL;
    if (!scheme)
        return error_set(error, ERROR_INVALID,
                         "the address must begin with https://, http://, s3://, hdfs://, "
                         "webhdfs:// or file://");
    place.kind = scheme->kind;
    place.is_secure = scheme->is_secure;
    if (cut_hash(&rest, &place, error) < 0 || check_letters(&place, rest, error) < 0)
        return -1;
    cut_path(rest, &place);
    if (scheme->has_other_port)
        place.authority = without_port(place.authority);
    if (place.kind == PLACE_S3 ? check_bucket(place.authority, error) < 0
                               : place.kind != PLACE_FILE && check_host(place.authority, error) < 0)
        return -1;
    if (place.kind == PLACE_FILE && place.authority.size)
        return error_set(error, ERROR_INVALID, "file:// must be followed by a path from the root");
    if (place.path.size < 2 && place.kind != PLACE_HTTP)
        return error_set(error, ERROR_INVALID, "the address names no file");
    *out_place = place;
    return 0;
}

bool place_is_folder(const struct place *place)
{
    return text_ends_with(place->path, TEXT("/"));
}

struct text place_file_name(const struct place *place)
{
    const char *slash = place->path.size ? memrchr(place->path.data, '/', place->path.size) : NULL;
    if (!slash)
        return (struct text){0};
    return (struct text){slash + 1, place->path.size - (size_t)(slash + 1 - place->path.data)};
}

/* ---- For people ------------------------------------------------------------------------------ */

const char *place_describe(struct text address, char out[PLACE_NAME_SIZE])
{
    struct text shown;
    struct text rest;
    (void)text_cut(address, '#', &shown, &rest);
    (void)text_cut(shown, '?', &shown, &rest);
    if (shown.size < PLACE_NAME_SIZE) {
        snprintf(out, PLACE_NAME_SIZE, TEXT_FORMAT, TEXT_ARGS(shown));
    } else {
        /* Where it begins and where it ends tells most. */
        const size_t half = (PLACE_NAME_SIZE - 4) / 2;
        snprintf(out, PLACE_NAME_SIZE, "%.*s...%.*s", (int)half, shown.data, (int)half,
                 shown.data + shown.size - half);
    }
    text_make_plain(out);
    return out;
}
