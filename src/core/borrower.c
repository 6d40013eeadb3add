/* Borrower: which accounts count as one, for prices, grants and reputation. */
#include "core/core_internal.h"

uint64_t core_borrower(const struct core *core, uint64_t account)
{
    const struct account *found = core_account(core, account);
    if (!found)
        return 0;
    if (found->group)
        return found->group;
    return found->address_block ? found->address_block : found->id;
}

bool core_is_self_trade(const struct core *core, uint64_t payer, uint64_t payee)
{
    if (payer == payee)
        return true;
    const struct account *left = core_account(core, payer);
    const struct account *right = core_account(core, payee);
    if (!left || !right)
        return false;
    return (left->group && left->group == right->group) ||
           (left->address_block && left->address_block == right->address_block);
}
