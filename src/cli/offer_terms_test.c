#include "cli/offer_terms.h"
#include "testing/testing.h"

#define NOW_MS INT64_C(1794744000000) /* 2026-11-15 12:00 UTC, a Sunday */

static const struct api_machine machine = {
    .probe = {.cores_milli = 4000, .ram_bytes = INT64_C(8) << 30, .disk_bytes = INT64_C(20) << 30},
};

struct written {
    struct arena *arena;
    const char *body, *plan;
};

static struct written write_terms(const struct offer_terms_options *options)
{
    struct error error = {0};
    struct written written = {.arena = arena_new(0)};
    struct buffer body AUTO_BUFFER, plan AUTO_BUFFER;
    buffer_init(&body, 4096);
    buffer_init(&plan, 4096);
    ASSERT_OK(offer_terms_write(written.arena, options, &machine, NOW_MS, &body, &plan, &error));
    written.body = arena_copy_string(written.arena, buffer_text(&body));
    written.plan = arena_copy_string(written.arena, buffer_text(&plan));
    return written;
}

static void expect(const struct offer_terms_options *options, const char *body, const char *plan)
{
    const struct written written = write_terms(options);
    assert_string_equal(written.body, body);
    assert_string_equal(written.plan, plan);
    arena_free(written.arena);
}

static void expect_refusal(const struct offer_terms_options *options, const char *message)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer body AUTO_BUFFER, plan AUTO_BUFFER;
    buffer_init(&body, 4096);
    buffer_init(&plan, 4096);
    ASSERT_FAILS(offer_terms_write(arena, options, &machine, NOW_MS, &body, &plan, &error),
                 ERROR_INVALID);
    assert_string_equal(error.message, message);
}

#define LIST(...)                                                                                  \
    {                                                                                              \
        (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)      \
    }

TEST(amounts_are_numbers_or_shares_of_the_machine)
{
    expect(&(struct offer_terms_options){.cores = "50%", .ram = "2GiB", .bandwidth = "20Mbit"},
           "{\"cores_share_milli\":500,\"ram_bytes\":2147483648,\"bandwidth_kbit\":20000}",
           "  cores          2, 50% of 4\n"
           "  memory         2.0 GiB\n"
           "  network rate   20 Mbit/s\n");
    expect(&(struct offer_terms_options){.cores = "0.5"}, "{\"cores_milli\":500}",
           "  cores          0.5\n");
}

TEST(words_of_time_are_shown_with_the_first_opening)
{
    expect(&(struct offer_terms_options){.when = "mon-fri 18-8", .zone = "Europe/Berlin"},
           "{\"when\":\"mon-fri 18-8\",\"zone\":\"Europe/Berlin\"}",
           "  when           Mon-Fri 18:00-08:00 Europe/Berlin\n"
           "  open first     2026-11-16 17:00:00Z until 2026-11-17 07:00:00Z\n");
    expect(&(struct offer_terms_options){.when = "now"}, "{\"when\":\"now\"}",
           "  when           always\n");
}

TEST(prices_and_audiences_have_short_forms)
{
    expect(&(struct offer_terms_options){.min_price = LIST("core=0.02", "gpu=1"),
                                         .audience = LIST("alice", "bob")},
           "{\"minimum\":{\"core_micro\":20000,\"ram_micro\":0,\"gpu_micro\":1000000,"
           "\"disk_micro\":0},\"audience\":\"accounts\",\"accounts\":[\"alice\",\"bob\"]}",
           "  least price    core=0.02, gpu=1 credits an hour\n"
           "  for            alice, bob\n");
    expect(&(struct offer_terms_options){.min_price = LIST("auto"),
                                         .audience = LIST("group:lab"),
                                         .max_lease = "any"},
           "{\"max_lease_ms\":0,\"minimum\":{\"core_micro\":0,\"ram_micro\":0,\"gpu_micro\":0,"
           "\"disk_micro\":0},\"audience\":\"group\",\"group\":\"lab\"}",
           "  longest lease  any\n"
           "  least price    automatic: the market's, whatever it is\n"
           "  for            group:lab\n");
}

TEST(unsold_time_is_given_away_or_not)
{
    expect(
        &(struct offer_terms_options){.spare = "on"}, "{\"spare\":true}",
        "  unsold time    free for members with less than 1 credit, until somebody pays for it\n");
    expect(&(struct offer_terms_options){.spare = "off"}, "{\"spare\":false}",
           "  unsold time    not given away\n");
    expect_refusal(&(struct offer_terms_options){.spare = "maybe"}, "--spare: write on or off");
}

TEST(mistakes_name_the_option)
{
    expect_refusal(&(struct offer_terms_options){.cores = "many"},
                   "--cores: \"many\" is not a number of cores; write it like 2, 0.5 or 50%");
    expect_refusal(&(struct offer_terms_options){.cores = "150%"},
                   "--cores: \"150%\" is not a share from 0 to 100 %; write it like 50% or 0.5");
    expect_refusal(&(struct offer_terms_options){.bandwidth = "20"},
                   "--bandwidth: \"20\" is not a rate; write it like 20Mbit or 1Gbit");
    expect_refusal(&(struct offer_terms_options){.when = "Mon-Fry 18-8"},
                   "--when: at character 5 of the schedule: \"Fry\" is not a day of the week; did "
                   "you mean \"Fri\"?");
    expect_refusal(&(struct offer_terms_options){.min_price = LIST("cor=1")},
                   "--min-price: \"cor=1\" is not a price; write auto, or core=0.02 (or ram, gpu, "
                   "disk)");
    expect_refusal(&(struct offer_terms_options){.min_price = LIST("core=-1")},
                   "--min-price: core cannot be negative");
    expect_refusal(
        &(struct offer_terms_options){.min_price = LIST("core=0.02", "ram=1", "core=0.03")},
        "--min-price: core is there twice");
    expect_refusal(&(struct offer_terms_options){.audience = LIST("bob", "ann", "bob")},
                   "--for: \"bob\" is there twice");
    expect_refusal(&(struct offer_terms_options){.labels = "a,b,a"},
                   "--labels: \"a\" is there twice");
    expect_refusal(&(struct offer_terms_options){.audience = LIST("anyone", "bob")},
                   "--for: anyone stands alone; give anyone, accounts, or one group");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_numbers_or_shares_of_the_machine),
        cmocka_unit_test(words_of_time_are_shown_with_the_first_opening),
        cmocka_unit_test(prices_and_audiences_have_short_forms),
        cmocka_unit_test(unsold_time_is_given_away_or_not),
        cmocka_unit_test(mistakes_name_the_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
