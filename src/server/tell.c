#include "server/tell.h"

#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static bool is_private(uint32_t host)
{
    return host >> 24 == 10 || host >> 20 == 0xac1 || host >> 16 == 0xc0a8 || host >> 22 == 0x191 ||
           host >> 24 == IN_LOOPBACKNET;
}

uint32_t tell_host_number(const char *host)
{
    static const char mapped[] = "::ffff:";
    struct in_addr parsed;
    if (!strncmp(host, mapped, sizeof(mapped) - 1))
        host += sizeof(mapped) - 1;
    return inet_pton(AF_INET, host, &parsed) == 1 ? ntohl(parsed.s_addr) : 0;
}

bool tell_may(const char *asked_at, const char *told_at, struct text address)
{
    struct host_port target;
    struct error ignored; /* one that cannot be read is none */
    if (host_port_parse(address, &target, &ignored) < 0)
        return false;
    const uint32_t host = tell_host_number(target.host);
    const uint32_t source = tell_host_number(told_at);
    const bool is_same = !strcmp(told_at, asked_at);
    const bool is_here = is_same && source >> 24 == IN_LOOPBACKNET;
    return address_may_dial(&target, is_here) &&
           (host == source || is_here || (is_same && is_private(host)));
}
