#include "server/client_address.h"

#include <arpa/inet.h>
#include <string.h>

#define V4_MARK (UINT64_C(0xf4) << 56)

static struct client_address of_v4(uint32_t host)
{
    const bool is_loopback = host >> 24 == 127;
    const bool is_private = host >> 24 == 10 || host >> 20 == 0xac1 || host >> 16 == 0xc0a8 ||
                            host >> 16 == 0xa9fe || host >> 24 == 0;
    return (struct client_address){.block = V4_MARK | host >> 8,
                                   .site = V4_MARK | host >> 8,
                                   .is_loopback = is_loopback,
                                   .is_public = !is_loopback && !is_private};
}

static struct client_address of_v6(const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t loopback[16] = {[15] = 1};
    if (!memcmp(bytes, mapped, sizeof(mapped)))
        return of_v4((uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 |
                     (uint32_t)bytes[14] << 8 | bytes[15]);
    uint64_t block = 0;
    for (int i = 0; i < 8; i++)
        block = block << 8 | bytes[i];
    return (struct client_address){.block = block,
                                   .site = block & ~UINT64_C(0xffff),
                                   .is_loopback = !memcmp(bytes, loopback, sizeof(loopback)),
                                   .is_public = bytes[0] >> 5 == 1}; /* 2000::/3 */
}

struct client_address client_address_of(const struct address *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    switch (address->storage.ss_family) {
    case AF_INET:
        memcpy(&v4, &address->storage, sizeof(v4));
        return of_v4(ntohl(v4.sin_addr.s_addr));
    case AF_INET6:
        memcpy(&v6, &address->storage, sizeof(v6));
        return of_v6(v6.sin6_addr.s6_addr);
    default:
        return (struct client_address){0};
    }
}

uint64_t client_address_block(const struct client_address *client, int64_t v6_prefix)
{
    const bool is_v4 = client->block >> 56 == V4_MARK >> 56;
    return is_v4 ? client->block : client->block & UINT64_MAX << (64 - v6_prefix);
}

/* The n-th entry from the right, or the first when there are fewer. */
static struct text entry_from_right(struct text header, uint64_t n)
{
    size_t end = header.size;
    for (;;) {
        size_t start = end;
        while (start > 0 && header.data[start - 1] != ',')
            start--;
        if (--n == 0 || start == 0)
            return text_trim((struct text){header.data + start, end - start});
        end = start - 1;
    }
}

/* "203.0.113.7", "2001:db8::1", either with a port, IPv6 in brackets or not. */
static bool read_entry(struct text entry, struct client_address *out)
{
    char host[INET6_ADDRSTRLEN];
    if (entry.size && entry.data[0] == '[') {
        const char *end = memchr(entry.data, ']', entry.size);
        if (!end)
            return false;
        entry = (struct text){entry.data + 1, (size_t)(end - entry.data - 1)};
    } else {
        struct text before, after;
        const bool has_colon = text_cut(entry, ':', &before, &after);
        if (has_colon && !memchr(after.data, ':', after.size))
            entry = before; /* one colon: IPv4 with a port */
    }
    struct error error; /* too long for an address is none */
    if (text_copy(entry, host, sizeof(host), &error) < 0)
        return false;
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        *out = of_v4(ntohl(v4.s_addr));
    else if (inet_pton(AF_INET6, host, &v6) == 1)
        *out = of_v6(v6.s6_addr);
    else
        return false;
    return true;
}

struct client_address client_address_forwarded(const struct address *connection, struct text header,
                                               uint64_t proxy_count)
{
    struct client_address found;
    if (!proxy_count)
        return client_address_of(connection);
    if (!header.size || !read_entry(entry_from_right(header, proxy_count), &found))
        found = client_address_of(connection);
    /* That would lift the limits, and a proxy on this machine that forgets the header would lift
     * them for the whole world. */
    found.is_loopback = false;
    return found;
}
