#include "market/price_rule.h"

#include "base/assert.h"
#include "market/fixed.h"

#define LEVEL_STEP_MAX_Q32 INT64_C(2512394810) /* log2(1.5) */
#define FACTOR_MAX_Q32     (2 * FIXED_Q32_ONE) /* log2(4) */
#define ERROR_MAX_Q32      (2 * FIXED_Q32_ONE)
#define COLD_SPAN_LOG2     6 /* prices stay within 2^6 of the cold ones */

static int64_t cold_micro(enum price_resource resource)
{
    const struct price_vector cold = price_cold_start();
    return price_vector_get(&cold, resource);
}

static int64_t cold_level_q32(enum price_resource resource)
{
    return fixed_log2_q32((unsigned __int128)cold_micro(resource));
}

void price_board_init(struct price_board *board)
{
    *board = (struct price_board){0};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        board->curves[r].level_q32 = cold_level_q32(r);
}

static int64_t clamp_level(int64_t level_q32, enum price_resource resource)
{
    const int64_t cold = cold_level_q32(resource);
    return fixed_clamp(level_q32, cold - COLD_SPAN_LOG2 * FIXED_Q32_ONE,
                       cold + COLD_SPAN_LOG2 * FIXED_Q32_ONE);
}

static int64_t credibility_q16(int64_t effective_q16)
{
    return fixed_scale(effective_q16, FIXED_Q16_ONE, effective_q16 + 10 * FIXED_Q16_ONE);
}

/* log2(wanted / (9/10 offered)) = log2(10 wanted) - log2(9 offered). */
static int64_t error_q32(const struct price_inputs *inputs)
{
    if (inputs->wanted_milli_s == 0)
        return -ERROR_MAX_Q32;
    if (inputs->offered_milli_s == 0)
        return ERROR_MAX_Q32;
    const int64_t error = fixed_log2_q32((unsigned __int128)inputs->wanted_milli_s * 10) -
                          fixed_log2_q32((unsigned __int128)inputs->offered_milli_s * 9);
    return fixed_clamp(error, -ERROR_MAX_Q32, ERROR_MAX_Q32);
}

static void move_factors(struct price_working *working)
{
    int64_t sum = working->factor_step_q32;
    for (int s = 0; s < SLOT_PER_DAY; s++)
        sum += working->before.factor_q32[s];
    const int64_t mean = sum / SLOT_PER_DAY;
    for (int s = 0; s < SLOT_PER_DAY; s++) {
        const int64_t step = s == working->of_day ? working->factor_step_q32 : 0;
        working->after.factor_q32[s] = fixed_clamp(working->before.factor_q32[s] + step - mean,
                                                   -FACTOR_MAX_Q32, FACTOR_MAX_Q32);
    }
}

struct price_working price_work(const struct price_board *board, enum price_resource resource,
                                int of_day, const struct price_inputs *inputs)
{
    ASSERT(resource < PRICE_RESOURCE_COUNT && of_day >= 0 && of_day < SLOT_PER_DAY);
    ASSERT(price_inputs_are_valid(inputs));
    struct price_working working = {
        .resource = resource,
        .of_day = of_day,
        .inputs = *inputs,
        .is_still = inputs->wanted_milli_s == 0 && inputs->offered_milli_s == 0,
        .before = board->curves[resource],
        .after = board->curves[resource],
    };
    if (working.is_still)
        return working;
    const int64_t credibility = working.credibility_q16 = credibility_q16(inputs->effective_q16);
    const int64_t error = working.error_q32 = error_q32(inputs);
    working.level_step_q32 = fixed_clamp(fixed_scale(error, 3 * credibility, 5 * FIXED_Q16_ONE),
                                         -LEVEL_STEP_MAX_Q32, LEVEL_STEP_MAX_Q32);
    working.factor_step_q32 = fixed_scale(error, credibility, 10 * FIXED_Q16_ONE);
    working.after.level_q32 =
        clamp_level(working.before.level_q32 + working.level_step_q32, resource);
    move_factors(&working);
    return working;
}

void price_board_close(struct price_board *board, int of_day,
                       const struct price_inputs inputs[PRICE_RESOURCE_COUNT])
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        const struct price_working working = price_work(board, r, of_day, &inputs[r]);
        board->curves[r] = working.after;
    }
}

struct price_vector price_board_price(const struct price_board *board, int of_day,
                                      const struct price_vector *floor)
{
    ASSERT(of_day >= 0 && of_day < SLOT_PER_DAY);
    struct price_vector price = {0};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        const int64_t cold = cold_micro(r);
        const int64_t least = cold >> COLD_SPAN_LOG2 > 0 ? cold >> COLD_SPAN_LOG2 : 1;
        const int64_t rule =
            fixed_exp2(board->curves[r].level_q32 + board->curves[r].factor_q32[of_day]);
        const int64_t within = fixed_clamp(rule, least, cold << COLD_SPAN_LOG2);
        const int64_t lowest = price_vector_get(floor, r);
        price_vector_set(&price, r, within > lowest ? within : lowest);
    }
    return price;
}

bool price_board_equal(const struct price_board *left, const struct price_board *right)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        const struct price_curve *a = &left->curves[r], *b = &right->curves[r];
        if (a->level_q32 != b->level_q32)
            return false;
        for (int s = 0; s < SLOT_PER_DAY; s++)
            if (a->factor_q32[s] != b->factor_q32[s])
                return false;
    }
    return true;
}

bool price_board_is_valid(const struct price_board *board)
{
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        if (board->curves[r].level_q32 != clamp_level(board->curves[r].level_q32, r))
            return false;
        for (int s = 0; s < SLOT_PER_DAY; s++)
            if (board->curves[r].factor_q32[s] < -FACTOR_MAX_Q32 ||
                board->curves[r].factor_q32[s] > FACTOR_MAX_Q32)
                return false;
    }
    return true;
}

bool price_inputs_are_valid(const struct price_inputs *inputs)
{
    return inputs->wanted_milli_s >= 0 && inputs->wanted_milli_s <= PRICE_USAGE_MILLI_S_MAX &&
           inputs->offered_milli_s >= 0 && inputs->offered_milli_s <= PRICE_USAGE_MILLI_S_MAX &&
           inputs->borrower_count >= 0 && inputs->borrower_count <= PRICE_BORROWERS_MAX &&
           inputs->effective_q16 >= FIXED_Q16_ONE &&
           inputs->effective_q16 <= PRICE_BORROWERS_MAX * FIXED_Q16_ONE;
}
