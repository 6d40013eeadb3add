#include "net/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

struct text url_host(struct text url)
{
    const char *slashes = memmem(url.data, url.size, "://", 3);
    if (!slashes)
        return (struct text){0};
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

bool url_is_own(struct text url)
{
    const struct text host = url_host(url);
    char name[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    struct error ignored; /* a longer name is no such address */
    if (host.size == 0 || text_copy(cut_port(host), name, sizeof(name), &ignored) < 0)
        return false;
    if (host.data[0] == '[')
        return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
    if (!strcmp(name, "localhost"))
        return true;
    return inet_pton(AF_INET, name, &four) == 1 && ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool url_is_private(struct text url)
{
    return text_starts_with(url, TEXT("https://")) ||
           (text_starts_with(url, TEXT("http://")) && url_is_own(url));
}
