#include "peer/open_terms.h"

#include <stdio.h>

void open_terms_init(struct open_terms *terms)
{
    *terms = (struct open_terms){.resolvers = {UINT32_C(0x09090909), UINT32_C(0x01010101)},
                                 .resolver_count = 2,
                                 .kbit_per_s = 100000};
}

int open_terms_set_resolvers(struct open_terms *terms, const char *const *addresses, size_t count,
                             struct error *error)
{
    if (count > OPEN_RESOLVERS_MAX)
        return error_set(error, ERROR_INVALID, "--resolver: at most %d", OPEN_RESOLVERS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct fence_network network;
        if (fence_network_parse(text_of(addresses[i]), &network, error) < 0 || network.bits != 32 ||
            !fence_is_public(network.address))
            return error_set(error, ERROR_INVALID,
                             "--resolver: \"%.40s\" is no public IPv4 address; jobs reach no other",
                             addresses[i]);
        terms->resolvers[i] = network.address;
        terms->resolver_count = (uint32_t)i + 1;
    }
    return 0;
}

int open_terms_set_closed(struct open_terms *terms, const char *const *networks, size_t count,
                          struct error *error)
{
    if (count > OPEN_CLOSED_MAX)
        return error_set(error, ERROR_INVALID, "--closed-networks: at most %d", OPEN_CLOSED_MAX);
    for (size_t i = 0; i < count; i++) {
        if (fence_network_parse(text_of(networks[i]), &terms->closed[i], error) < 0)
            return error_wrap(error, "--closed-networks");
        terms->closed_count = (uint32_t)i + 1;
    }
    return 0;
}

void open_terms_write_resolv_conf(const struct open_terms *terms, char out[OPEN_RESOLV_CONF_SIZE])
{
    size_t size = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < terms->resolver_count; i++) {
        const uint32_t address = terms->resolvers[i];
        size += (size_t)snprintf(out + size, OPEN_RESOLV_CONF_SIZE - size,
                                 "nameserver %u.%u.%u.%u\n", address >> 24, address >> 16 & 0xff,
                                 address >> 8 & 0xff, address & 0xff);
    }
}
