/*
 * The prices' part of a snapshot; the running slot's prices themselves are in its first line.
 */
#include "core/snapshot_internal.h"

struct prices_record {
    int64_t slot;
    uint64_t close_count;
    struct price_board board;
    struct price_usage offered;
    struct price_vector forecasts[CORE_PRICE_FORECASTS];
};

#define SLOT(name, owner, member) SCHEMA_RANGE(name, owner, member, SLOT_INDEX_MIN, SLOT_INDEX_MAX)
#define USAGE(name, owner, member)                                                                 \
    SCHEMA_RANGE(name, owner, member, -PRICE_USAGE_MILLI_S_MAX, PRICE_USAGE_MILLI_S_MAX)

static const struct json_field usage_fields[] = {
    USAGE("core_milli_s", struct price_usage, milli_s[PRICE_CORE]),
    USAGE("ram_milli_s", struct price_usage, milli_s[PRICE_RAM]),
    USAGE("gpu_milli_s", struct price_usage, milli_s[PRICE_GPU]),
    USAGE("disk_milli_s", struct price_usage, milli_s[PRICE_DISK]),
};
static const struct json_schema usage_schema =
    JSON_SCHEMA("usage", usage_fields, struct price_usage);

static const struct json_field board_fields[] = {
    SCHEMA_OBJECT("core", struct price_board, curves[PRICE_CORE], schema_price_curve),
    SCHEMA_OBJECT("ram", struct price_board, curves[PRICE_RAM], schema_price_curve),
    SCHEMA_OBJECT("gpu", struct price_board, curves[PRICE_GPU], schema_price_curve),
    SCHEMA_OBJECT("disk", struct price_board, curves[PRICE_DISK], schema_price_curve),
};
static const struct json_schema board_schema =
    JSON_SCHEMA("board", board_fields, struct price_board);

#define FORECAST(number)                                                                           \
    SCHEMA_OBJECT("forecast_" #number, struct prices_record, forecasts[(number)-1], schema_price)
static const struct json_field prices_fields[] = {
    SLOT("slot", struct prices_record, slot),
    SCHEMA_ID("close_count", struct prices_record, close_count),
    SCHEMA_OBJECT("board", struct prices_record, board, board_schema),
    SCHEMA_OBJECT("offered", struct prices_record, offered, usage_schema),
    FORECAST(1),
    FORECAST(2),
    FORECAST(3),
    FORECAST(4),
    FORECAST(5),
    FORECAST(6),
    FORECAST(7),
    FORECAST(8),
};
_Static_assert(CORE_PRICE_FORECASTS == 8, "a field for every forecast");
const struct json_schema snapshot_prices_schema =
    JSON_SCHEMA("prices", prices_fields, struct prices_record);

#define INPUTS(name, resource)                                                                     \
    SCHEMA_OBJECT(name, struct core_price_close, inputs[resource], schema_price_inputs)
static const struct json_field close_fields[] = {
    SLOT("slot", struct core_price_close, slot),
    SCHEMA_OBJECT("price", struct core_price_close, price, schema_price),
    SCHEMA_OBJECT("before", struct core_price_close, before, board_schema),
    INPUTS("core", PRICE_CORE),
    INPUTS("ram", PRICE_RAM),
    INPUTS("gpu", PRICE_GPU),
    INPUTS("disk", PRICE_DISK),
};
const struct json_schema snapshot_close_schema =
    JSON_SCHEMA("price_close", close_fields, struct core_price_close);

static const struct json_field borrower_fields[] = {
    SCHEMA_ID("id", struct price_borrower, id),
    SCHEMA_OBJECT("wanted", struct price_borrower, wanted, usage_schema),
};
const struct json_schema snapshot_borrower_schema =
    JSON_SCHEMA("price_borrower", borrower_fields, struct price_borrower);

static const struct json_field spread_fields[] = {
    SCHEMA_ID("job", struct price_spread, job),
    SCHEMA_ID("borrower", struct price_spread, borrower),
    SCHEMA_OBJECT("now", struct price_spread, now, usage_schema),
    SCHEMA_OBJECT("later", struct price_spread, later, usage_schema),
    SCHEMA_OBJECT("before", struct price_spread, before, usage_schema),
    SCHEMA_RANGE("slots_left", struct price_spread, slots_left, 0, 2 * SLOT_INDEX_MAX),
};
const struct json_schema snapshot_spread_schema =
    JSON_SCHEMA("price_spread", spread_fields, struct price_spread);

uint64_t snapshot_price_line_count(const struct core *core)
{
    return 1 + core->prices.close_kept + core->prices.meter.borrowers.count +
           core->prices.meter.spreads.count;
}

void snapshot_write_prices(const struct core *core, struct buffer *out)
{
    const struct core_prices *prices = &core->prices;
    struct prices_record record = {.slot = prices->slot,
                                   .close_count = prices->close_count,
                                   .board = prices->board,
                                   .offered = prices->meter.offered};
    memcpy(record.forecasts, prices->forecasts, sizeof(record.forecasts));
    snapshot_write_line(out, &snapshot_prices_schema, &record);
    for (size_t i = 0; i < prices->close_kept; i++)
        snapshot_write_line(out, &snapshot_close_schema, &prices->closes[i]);
    for (size_t i = 0; i < prices->meter.borrowers.count; i++)
        snapshot_write_line(out, &snapshot_borrower_schema,
                            prices->meter.borrowers.entries[i].value);
    for (size_t i = 0; i < prices->meter.spreads.count; i++)
        snapshot_write_line(out, &snapshot_spread_schema, prices->meter.spreads.entries[i].value);
}

int snapshot_restore_prices(struct core *core, const void *record, struct error *error)
{
    const struct prices_record *stored = record;
    struct core_prices *prices = &core->prices;
    if (!price_board_is_valid(&stored->board))
        return error_set(error, ERROR_CORRUPT, "the prices stand where no rule leads");
    prices->slot = stored->slot;
    prices->close_count = stored->close_count;
    prices->board = stored->board;
    prices->meter.offered = stored->offered;
    memcpy(prices->forecasts, stored->forecasts, sizeof(prices->forecasts));
    return 0;
}

int snapshot_restore_close(struct core *core, const void *record, struct error *error)
{
    const struct core_price_close *stored = record;
    struct core_prices *prices = &core->prices;
    const int64_t before =
        prices->close_kept ? prices->closes[prices->close_kept - 1].slot : SLOT_INDEX_MIN - 1;
    bool is_sound = price_board_is_valid(&stored->before) && stored->slot > before &&
                    stored->slot < prices->slot && prices->close_kept < CORE_PRICE_CLOSES &&
                    prices->close_kept < prices->close_count;
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        is_sound = is_sound && price_inputs_are_valid(&stored->inputs[r]);
    if (!is_sound)
        return error_set(error, ERROR_CORRUPT, "a slot that ended does not fit those before it");
    prices->closes[prices->close_kept++] = *stored;
    return 0;
}

int snapshot_restore_borrower(struct core *core, const void *record, struct error *error)
{
    const struct price_borrower *stored = record;
    struct price_meter *meter = &core->prices.meter;
    const size_t count = meter->borrowers.count;
    if (!map_get(&meter->borrowers, stored->id))
        price_meter_want(meter, stored->id, stored->wanted);
    if (meter->borrowers.count != count + 1)
        return error_set(error, ERROR_CORRUPT, "a borrower wants nothing, or is counted twice");
    return 0;
}

int snapshot_restore_spread(struct core *core, const void *record, struct error *error)
{
    const struct price_spread *stored = record;
    if (map_get(&core->prices.meter.spreads, stored->job))
        return error_set(error, ERROR_CORRUPT, "a job is spread over the slots twice");
    price_meter_restore_spread(&core->prices.meter, stored);
    return 0;
}
