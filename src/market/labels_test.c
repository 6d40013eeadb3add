#include "market/labels.h"
#include "testing/testing.h"

#include <stdio.h>

TEST(a_wish_asks_for_the_bits_its_words_have)
{
    struct labels labels;
    labels_init(&labels);
    const uint64_t torch = labels_borne(&labels, 'l', TEXT("python3-torch,cuda-12"));
    const uint64_t arm = labels_borne(&labels, 'l', TEXT("arm64"));
    assert_true(torch && arm && !(torch & arm));
    assert_true(labels_borne(&labels, 'l', TEXT("cuda-12,python3-torch")) == torch);
    assert_true((labels_wished(&labels, 'l', TEXT("cuda-12")) & ~torch) == 0);
    assert_true(labels_wished(&labels, 'l', TEXT("cuda-12,arm64")) & arm);
    assert_true(labels_wished(&labels, 'l', TEXT("")) == 0);
    assert_true(labels_wished(&labels, 'l', TEXT("unheard-of")) == LABELS_NEVER);
    assert_true(labels_wished(&labels, 'g', TEXT("arm64")) == LABELS_NEVER);
    labels_done(&labels);
}

TEST(words_beyond_the_bits_share_one_and_are_compared_themselves)
{
    struct labels labels;
    char word[16];
    labels_init(&labels);
    for (int i = 0; i < LABELS_BITS; i++) {
        snprintf(word, sizeof(word), "word-%d", i);
        assert_true(labels_borne(&labels, 'l', text_of(word)) == UINT64_C(1) << i);
    }
    assert_true(labels_borne(&labels, 'l', TEXT("late,word-3")) == (LABELS_OTHER | 8));
    assert_true(labels_wished(&labels, 'l', TEXT("later")) == LABELS_OTHER);
    assert_true(labels_are_in(TEXT("late"), TEXT("a,b"), TEXT("late")));
    assert_false(labels_are_in(TEXT("later,late"), TEXT("late"), TEXT("lat")));
    assert_true(labels_are_in(TEXT(""), TEXT(""), TEXT("")));
    labels_done(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wish_asks_for_the_bits_its_words_have),
        cmocka_unit_test(words_beyond_the_bits_share_one_and_are_compared_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
