/*
 * Bytes put to where a remote is: by what its kind of place knows, with attempts as of a reading.
 */
#include "source/remote_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>

void remote_hash_hex(struct text bytes, char out[REMOTE_HASH_TEXT_SIZE])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    ASSERT(EVP_Digest(bytes.size ? bytes.data : "", bytes.size, hash, &size, EVP_sha256(), NULL) ==
           1);
    text_hex_encode(hash, size, out);
}

int remote_judge_put(struct remote *remote, struct http_response *response, struct error *error)
{
    if (response->status >= 200 && response->status < 300)
        return 0;
    remote_refuse(response->status, error);
    if (response->status == 401 || response->status == 403)
        error_fill(error, ERROR_REFUSED, "the server does not let it be written (status %d)",
                   response->status);
    if (remote->scheme->explain(remote, response, error))
        error->code = ERROR_UNAVAILABLE; /* it is asked again, elsewhere */
    return -1;
}

int remote_put(struct remote *remote, int fd, struct error *error)
{
    char name[PLACE_NAME_SIZE];
    struct stat status;
    struct remote_reading reading = remote_whole(remote);
    if (!remote->scheme->put || place_is_folder(&remote->place))
        return error_set(error, ERROR_INVALID, "%s: results go to s3://bucket/... or hdfs://...",
                         place_describe(text_of(remote->address), name));
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "look at what is to be put");
    const size_t size = (size_t)status.st_size;
    if (size > remote->options.size_max)
        return error_set(error, ERROR_EXHAUSTED, "it has %zu bytes, and %" PRIu64 " are the most",
                         size, remote->options.size_max);
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno, "read what is to be put");
    const int result = remote->scheme->put(&reading, (struct text){size ? bytes : "", size}, error);
    if (size)
        munmap(bytes, size);
    return result;
}
