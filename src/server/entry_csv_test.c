#include "server/entry_csv.h"
#include "testing/testing.h"

TEST(a_row_has_a_field_for_every_column_of_the_head)
{
    struct buffer out AUTO_BUFFER;
    struct csv_writer writer;
    buffer_init(&out, 4096);
    csv_writer_init(&writer, &out);
    entry_csv_head(&writer);
    entry_csv_row(&writer, &(struct entry_csv){.id = 7,
                                               .at_ms = 1800000000000,
                                               .kind = TEXT("post"),
                                               .amount_micro = -250000,
                                               .direction = TEXT("out"),
                                               .job = 8,
                                               .job_name = TEXT("a, b"),
                                               .lease = 9,
                                               .machine = 10,
                                               .machine_name = TEXT("heron"),
                                               .other_account = 3,
                                               .other_account_name = TEXT("=lender"),
                                               .withheld_micro = 5,
                                               .memo = TEXT("tick 1")});
    assert_string_equal(
        buffer_string(&out),
        "id,at,at_ms,kind,amount_microcredits,amount_credits,direction,job,job_name,lease,machine,"
        "machine_name,other_account,other_account_name,withheld_microcredits,memo\r\n"
        "7,2027-01-15T08:00:00.000Z,1800000000000,post,-250000,-0.250000,out,8,\"a, b\",9,10,heron,"
        "3,'=lender,5,tick 1\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_a_field_for_every_column_of_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
