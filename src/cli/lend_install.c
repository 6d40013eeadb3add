#include "cli/lend_install.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { INDEX_URL_MAX = 1000 };

/* "127.0.0.1:8080" of "http://127.0.0.1:8080/simple". */
static struct text find_host(struct text url)
{
    const char *slashes = memmem(url.data, url.size, "://", 3);
    const struct text rest = {slashes + 3, url.size - (size_t)(slashes + 3 - url.data)};
    size_t size = 0;
    while (size < rest.size && !strchr("/?#", rest.data[size]))
        size++;
    return (struct text){rest.data, size};
}

/* Without its port, and an IPv6 address without its brackets. */
static struct text cut_port(struct text host)
{
    const char *end = host.data[0] == '[' ? memchr(host.data, ']', host.size) : NULL;
    if (end && (end + 1 == host.data + host.size || end[1] == ':'))
        return (struct text){host.data + 1, (size_t)(end - host.data) - 1};
    const char *colon = memchr(host.data, ':', host.size);
    return (struct text){host.data, colon ? (size_t)(colon - host.data) : host.size};
}

static bool is_own(struct text host)
{
    char name[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    struct error ignored; /* a longer name is no such address */
    if (text_copy(cut_port(host), name, sizeof(name), &ignored) < 0)
        return false;
    if (host.data[0] == '[')
        return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
    if (!strcmp(name, "localhost"))
        return true;
    return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

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
    const struct text host = find_host(url);
    if (host.size == 0)
        return error_set(error, ERROR_INVALID, "--index-url: names no host");
    if (memchr(host.data, '@', host.size))
        return error_set(error, ERROR_INVALID,
                         "--index-url: has a name or password in it, which everybody on this "
                         "machine would see; take an index, or a proxy of it, that needs none");
    if (!is_https && !is_own(host))
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
