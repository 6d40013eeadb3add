#include "cloud/boot_script.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Between single quotes of the shell all but these stand for themselves. */
static bool is_quotable(struct text text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\'' || text.data[i] == '\n' || text.data[i] == '\0')
            return false;
    return true;
}

static void write_install(const struct boot_script *script, struct buffer *out)
{
    buffer_append_format(out,
                         "package=$(mktemp --suffix=.deb)\n"
                         "curl -fsSL --retry 8 --retry-all-errors -o \"$package\" '" TEXT_FORMAT
                         "'\n",
                         TEXT_ARGS(script->package_url));
    if (script->package_sha256.size)
        buffer_append_format(out, "echo '" TEXT_FORMAT "  '\"$package\" | sha256sum -c -\n",
                             TEXT_ARGS(script->package_sha256));
    buffer_append_string(out, "chmod 644 \"$package\"\n"
                              "export DEBIAN_FRONTEND=noninteractive\n"
                              "apt-get update -q\n"
                              "apt-get install -qy \"$package\"\n");
}

int boot_script_write(const struct boot_script *script, struct buffer *out, struct error *error)
{
    const struct text parts[] = {script->package_url,         script->package_sha256,
                                 text_of(script->server_url), text_of(script->fingerprint),
                                 text_of(script->code),       text_of(script->name)};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (!is_quotable(parts[i]))
            return error_set(error, ERROR_INVALID, "a part of the boot script cannot be quoted");
    buffer_append_format(
        out,
        "#!/bin/sh\n"
        "# Lends this machine to the market that started it. It ends with the lender,\n"
        "# and after %" PRId64 " minutes whatever becomes of the market.\n"
        "set -eu\n"
        "trap 'shutdown -P now' EXIT\n"
        "shutdown -P +%" PRId64 "\n"
        "export HOME=\"${HOME:-/root}\"\n",
        script->life_minutes, script->life_minutes);
    if (script->package_url.size)
        write_install(script, out);
    if (script->fingerprint)
        buffer_append_format(out, "export SOUK_FINGERPRINT='%s'\n", script->fingerprint);
    buffer_append_format(out,
                         "export SOUK_LEND_CODE='%s'\n"
                         "souk lend --server '%s' --name '%s' --memory 85%% --no-watch\n",
                         script->code, script->server_url, script->name);
    return buffer_check(out, error);
}
