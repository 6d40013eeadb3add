#include "runtime/source_key.h"

#include "base/assert.h"

#include <sodium.h>

void source_key(const uint8_t secret[SOURCE_SECRET_SIZE], uint64_t lease,
                uint8_t out_key[SOURCE_KEY_SIZE])
{
    static const char purpose[] = "souk source";
    uint8_t number[8];
    crypto_generichash_state state;
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(lease >> (8 * i));
    ASSERT(crypto_generichash_init(&state, secret, SOURCE_SECRET_SIZE, SOURCE_KEY_SIZE) == 0);
    crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof(purpose));
    crypto_generichash_update(&state, number, sizeof(number));
    crypto_generichash_final(&state, out_key, SOURCE_KEY_SIZE);
    sodium_memzero(&state, sizeof(state));
}
