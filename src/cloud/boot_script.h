/*
 * Boot script: what an instance runs as root when it boots: it installs the lender where the image
 * has none, enrols with a one-time code, and ends with the lender, or by itself when its time is
 * up.
 *
 * Everybody on the instance may read it as long as it runs: the only secret is the code, which is
 * used up by the time anything else is there.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

struct boot_script {
    int64_t life_minutes;
    struct text package_url, package_sha256; /* "": none */
    const char *server_url;
    const char *fingerprint; /* NULL: plain HTTP, which has no key */
    const char *code;
    const char *name;
};

/* INVALID when a part has to be quoted, which none of ours has. */
MUST_CHECK int boot_script_write(const struct boot_script *script, struct buffer *out,
                                 struct error *error);
