#include "cli/lend_install.h"

#include "net/url.h"

#include <string.h>

enum { INDEX_URL_MAX = 1000 };

static int check_index(const char *index_url, struct error *error)
{
    const struct text url = text_of(index_url);
    const bool is_https = text_starts_with(url, TEXT("https://"));
    if (url.size > INDEX_URL_MAX)
        return error_set(error, ERROR_INVALID, "--index-url: longer than %d letters",
                         INDEX_URL_MAX);
    for (size_t i = 0; i < url.size; i++)
        if (url.data[i] <= ' ' || url.data[i] > '~')
            return error_set(error, ERROR_INVALID, "--index-url: has a letter that no address has");
    if (!is_https && !text_starts_with(url, TEXT("http://")))
        return error_set(error, ERROR_INVALID,
                         "--index-url: is an address like https://index.example/simple");
    const struct text host = url_host(url);
    if (host.size == 0)
        return error_set(error, ERROR_INVALID, "--index-url: names no host");
    if (memchr(host.data, '@', host.size))
        return error_set(error, ERROR_INVALID,
                         "--index-url: has a name or password in it, which everybody on this "
                         "machine would see; take an index, or a proxy of it, that needs none");
    if (!url_is_private(url))
        return error_set(
            error, ERROR_INVALID,
            "--index-url: http is for an index on this machine; elsewhere it is https");
    return 0;
}

int lend_install_parse(const char *install, const char *index_url, struct peer_options *peer,
                       struct error *error)
{
    if (index_url) {
        if (check_index(index_url, error) < 0)
            return -1;
        peer->index_url = index_url;
    }
    if (!install)
        return 0;
    for (int i = 0; i < OFFER_INSTALL_COUNT; i++)
        if (!strcmp(install, offer_install_name((enum offer_install)i))) {
            peer->install = (enum offer_install)i;
            peer->offers_install = true;
            return 0;
        }
    return error_set(error, ERROR_INVALID, "--install: must be none, wheels or index");
}
