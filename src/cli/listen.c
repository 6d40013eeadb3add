#include "cli/listen.h"

#include <stdio.h>
#include <string.h>

int listen_find(const struct listen_options *options, struct address *out_address,
                struct tls_certificate *certificate, struct error *error)
{
    struct host_port target;
    if (host_port_parse(text_of(options->listen), &target, error) < 0 ||
        address_resolve(&target, out_address, error) < 0)
        return error_wrap(error, "--listen");
    if (!options->tls_cert != !options->tls_key)
        return error_set(error, ERROR_INVALID, "--tls-cert and --tls-key belong together");
    if (!address_is_loopback(out_address) && !options->tls_cert && !options->is_behind_proxy)
        return error_set(error, ERROR_INVALID,
                         "--listen %s: on others than loopback give --tls-cert and --tls-key, or "
                         "--behind-proxy",
                         options->listen);
    return options->tls_cert
               ? tls_certificate_read(options->tls_cert, options->tls_key, certificate, error)
               : 0;
}

void listen_url(const struct listen_options *options, const struct address *address, uint16_t port,
                char out[LISTEN_URL_SIZE])
{
    char host[ADDRESS_TEXT_SIZE];
    address_format_host(address, host);
    const bool is_v6 = strchr(host, ':') != NULL;
    snprintf(out, LISTEN_URL_SIZE, "http%s://%s%s%s:%u", options->tls_cert ? "s" : "",
             is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}
