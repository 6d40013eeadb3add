#include "exchange/range.h"

#include "base/assert.h"
#include "exchange/message.h"

enum { RUNS_MANY = 16 };

struct range range_of(size_t count, uint32_t servers, uint32_t rank)
{
    ASSERT(rank < servers && servers <= count);
    const size_t runs = (count + EXCHANGE_DATA_FLOATS - 1) / EXCHANGE_DATA_FLOATS;
    const bool is_by_runs = runs >= (size_t)servers * RUNS_MANY;
    const size_t unit = is_by_runs ? EXCHANGE_DATA_FLOATS : 1;
    const size_t units = is_by_runs ? runs : count;
    const size_t first = units * rank / servers * unit;
    const size_t end = rank + 1 == servers ? count : units * (rank + 1) / servers * unit;
    return (struct range){first, end - first};
}
