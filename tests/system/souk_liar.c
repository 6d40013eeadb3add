/*
 * The program as a lender would change it who wants to be paid for nothing: before each step enters
 * the exchange, the parameters get noise in place of what was learnt.
 *
 * Linked with -Wl,--wrap=exchange_client_step; for test_faulty.py alone.
 */
#include "exchange/client.h"

bool __real_exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                                 float *parameters);
bool __wrap_exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                                 float *parameters);

bool __wrap_exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                                 float *parameters)
{
    for (int i = 0; i < 100; i++)
        parameters[i] += i % 2 ? 0.25F : -0.25F;
    return __real_exchange_client_step(client, step, parameters);
}
