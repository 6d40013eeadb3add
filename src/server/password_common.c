/*
 * The passwords that are tried first: the most used of published leaks that are long enough to be
 * taken at all, in lower case, sorted; and what needs no list.
 */
#include "server/password.h"

#include <ctype.h>
#include <stdlib.h>

enum { PIECE_MAX = 4 };

/* clang-format off */
static const char *const common[] = {
    "00000000001", "0123456789", "01234567890", "0192837465", "0987654321", "1029384756",
    "111111111a", "1111122222", "1122334455", "11223344556677", "1223334444", "1231231234",
    "123123123a", "1234512345", "1234554321", "12345654321", "1234567812345678", "1234567890",
    "1234567890a", "1234567890q", "1234567891", "12345678910", "123456789123", "123456789a",
    "123456789q", "12345678ab", "1234567abc", "123456abcd", "123456abcdef", "123456qwerty",
    "12345abcde", "12345qwert", "1234qwerasdf", "1234qwerty", "123abc123abc", "123qwe123qwe",
    "123qweasd1", "123qweasdzxc", "1357924680", "1472583690", "147258369a", "159357159357",
    "159753159753", "1a2b3c4d5e", "1q2w3e4r5t", "1q2w3e4r5t6y", "1q2w3e4r5t6y7u",
    "1q2w3e4r5t6y7u8i", "1qaz2wsx3edc", "1qaz2wsx3edc4rfv", "1qazxsw23edc", "2468013579",
    "2718281828", "3141592653", "31415926535", "741852963a", "7894561230", "789456123a",
    "963852741a", "9876543210", "9876543211", "987654321a", "987654321q", "a123456789",
    "a1b2c3d4e5", "a1b2c3d4e5f6", "abc1234567", "abc12345678", "abc123456789", "abc123abc123",
    "abcd123456", "abcd1234567", "abcde12345", "abcdef1234", "abcdef12345", "abcdef123456",
    "abcdefg123", "abcdefg1234", "abcdefgh12", "abcdefgh123", "admin12345", "admin123456",
    "admin1234567", "admin@1234", "admin@12345", "adminadmin", "adminadmin1", "administrator",
    "administrator1", "adminpassword", "alexander1", "alexander12", "alexander123", "alexandra1",
    "andrew1234", "angel12345", "anthony123", "anything123", "arsenal123", "asd1234567",
    "asdf123456", "asdfasdfasdf", "asdfgh1234", "asdfgh12345", "asdfghjkl1", "asdfghjkl12",
    "asdfghjkl123", "asdfghjkl;", "asdfghjklqwertyuiop", "ashley1234", "asshole123", "australia1",
    "autumn2023", "autumn2024", "autumn2025", "autumn2026", "babygirl01", "babygirl12",
    "babygirl123", "barcelona1", "barcelona10", "barcelona123", "baseball12", "baseball123",
    "basketball", "basketball1", "batman1234", "batman12345", "bitch12345", "blackberry",
    "blackjack1", "blackjack21", "blessed123", "blink182182", "blueberry1", "budweiser1",
    "bullshit123", "butterfly1", "butterfly12", "butterfly123", "california", "california1",
    "californication", "callofduty4", "changeme1!", "changeme12", "changeme123", "charlie123",
    "charlie1234", "cheesecake", "chelsea123", "chicago123", "chocolate1", "chocolate12",
    "chocolate123", "christian1", "christina1", "christopher", "christopher1", "cinderella",
    "cinderella1", "cocacola12", "cocacola123", "computer12", "computer123", "computer1234",
    "corvette12", "counterstrike", "daniel1234", "december2025", "deeplearning", "default123",
    "defaultpassword", "diamond123", "dragon1234", "dragon12345", "dragonball1", "dragonballz",
    "dragonfly1", "elizabeth1", "elizabeth12", "elizabeth123", "evanescence", "everything",
    "familyfirst", "ferrari123", "football10", "football12", "football123", "forever123",
    "forgetmenot", "fortnite123", "friends123", "friendship", "fuckoff123", "fuckyou123",
    "fuckyou1234", "fuckyou12345", "fuckyoubitch", "getmeoutofhere", "godisgood1", "godisgreat",
    "godislove1", "goldfish12", "greenday123", "guest12345", "guestguest", "harleydavidson",
    "heaven1234", "hello12345", "hello123456", "hellokitty", "hellokitty1", "helloworld",
    "helloworld1", "helloworld123", "hurricane1", "iforgotpassword", "ilovegod123", "ilovejesus",
    "ilovemusic", "ilovemydad", "ilovemymom", "ilovemyself", "ilovepizza", "iloveyou11",
    "iloveyou12", "iloveyou123", "iloveyou1234", "iloveyou4ever", "iloveyoubaby", "iloveyouforever",
    "iloveyouso", "internet12", "internet123", "jackdaniels", "january2024", "january2025",
    "january2026", "jennifer12", "jessica123", "jessica1234", "jesus12345", "jesuschrist",
    "jesuschrist1", "jesusislord", "jesusloves", "jordan1234", "jordan2323", "juventus123",
    "lamborghini", "letmein123", "letmein1234", "letmeinnow", "letmeinplease", "lightning1",
    "linkinpark", "linkinpark1", "liverpool1", "liverpool12", "liverpool123", "lkjhgfdsa1",
    "london1234", "lovelovelove", "lovely1234", "loveyou123", "machinelearning", "manchester",
    "manchester1", "manutd1234", "marketplace", "marketplace1", "marlboro123", "marshmallow",
    "master1234", "master12345", "mercedes123", "metallica1", "metallica12", "michael123",
    "michael1234", "minecraft1", "minecraft12", "minecraft123", "mnbvcxz123", "monday1234",
    "monkey1234", "monkey12345", "motherfucker", "motherlode", "mustang123", "mylove1234",
    "mypassword", "mypassword1", "mypassword123", "nathaniel1", "newpassword", "newpassword1",
    "newyork123", "nintendo64", "nirvana123", "nopassword", "nothing123", "november2026",
    "p@ssw0rd1!", "p@ssw0rd12", "p@ssw0rd123", "p@ssword123", "pa$$word123", "pa55word123",
    "passw0rd1!", "passw0rd12", "passw0rd123", "password00", "password01", "password1!",
    "password11", "password12", "password123", "password123!", "password1234", "password2020",
    "password2021", "password2022", "password2023", "password2024", "password2025", "password2026",
    "password99", "password@1", "password@123", "passwordpassword", "pineapple1", "platinum123",
    "playstation", "playstation1", "playstation2", "playstation3", "poiuytrewq", "pokemon123",
    "pokemon1234", "porsche911", "princess01", "princess12", "princess123", "princess1234",
    "q1w2e3r4t5", "q1w2e3r4t5y6", "qazwsx1234", "qazwsx12345", "qazwsx123456", "qazwsxedc1",
    "qazwsxedc123", "qazwsxedcrfv", "qwe1234567", "qweasd123456", "qweasdzxc1", "qweasdzxc123",
    "qweqweqwe1", "qwer123456", "qwerty1234", "qwerty12345", "qwerty123456", "qwerty7890",
    "qwertyasdf", "qwertyqwerty", "qwertyuiop", "qwertyuiop1", "qwertyuiop12", "qwertyuiop123",
    "qwertyuiop[]", "qwertyuiopasdfghjkl", "rainbow123", "rainbow1234", "realmadrid", "realmadrid1",
    "rememberme", "rememberme1", "root123456", "rootpassword", "rootroot12", "runescape1",
    "runescape12", "runescape123", "samsung123", "samsung1234", "secret1234", "secret12345",
    "secretpassword", "shadow1234", "shadow12345", "silverfish", "slipknot123", "slipknot666",
    "snowwhite1", "softball12", "something1", "soukmarket", "soukpassword", "spiderman1",
    "spiderman12", "spiderman123", "spring2023", "spring2024", "spring2025", "spring2026",
    "starcraft1", "startrek123", "starwars12", "starwars123", "stephanie1", "strawberry",
    "strawberry1", "summer2020", "summer2021", "summer2022", "summer2023", "summer2024",
    "summer2025", "summer2026", "sunflower1", "sunflower12", "sunshine01", "sunshine12",
    "sunshine123", "superadmin", "superadmin1", "superman12", "superman123", "superuser1",
    "supervisor", "sweetheart", "sweetheart1", "test123456", "test1234567", "tester1234",
    "testing123", "testing1234", "testpassword", "testtest12", "testtest123", "thepassword",
    "thomas1234", "thunder123", "tinkerbell", "tinkerbell1", "topsecret1", "topsecret123",
    "truelove12", "trustno1234", "trustnobody", "trustnoone", "volleyball", "warcraft123",
    "washington", "washington1", "watermelon", "welcome123", "welcome123!", "welcome1234",
    "welcome12345", "welcome2020", "welcome2021", "welcome2022", "welcome2023", "welcome2024",
    "welcome2025", "welcome2026", "welcome@123", "welcomeback", "whatever12", "whatever123",
    "whatever1234", "winter2020", "winter2021", "winter2022", "winter2023", "winter2024",
    "winter2025", "winter2026", "worldofwarcraft", "yourpassword", "zaq12wsxcde3", "zaq1zaq1zaq1",
    "zxcvbnm,./", "zxcvbnm123", "zxcvbnm1234", "zxcvbnmasdfghjkl",
};
/* clang-format on */

static int compare(const void *key, const void *item)
{
    const struct text *wanted = key;
    return text_compare(*wanted, text_of(*(const char *const *)item));
}

/* "aaaaaaaaaa", "1212121212", "abcabcabcabc". */
static bool is_short_piece_repeated(const char *lower, size_t size)
{
    for (size_t piece = 1; piece <= PIECE_MAX; piece++) {
        size_t at = piece;
        while (at < size && lower[at] == lower[at - piece])
            at++;
        if (at == size)
            return true;
    }
    return false;
}

/* "abcdefghij", "9876543210", "0123456789012": each one step from the last, whichever way. */
static bool is_run(const char *lower, size_t size, int step)
{
    for (size_t i = 1; i < size; i++) {
        const bool wraps =
            isdigit((unsigned char)lower[i]) && lower[i] - lower[i - 1] == (step > 0 ? -9 : 9);
        if (lower[i] - lower[i - 1] != step && !wraps)
            return false;
    }
    return true;
}

bool password_is_common(struct text password)
{
    char lower[PASSWORD_SIZE_MAX];
    if (password.size == 0 || password.size > sizeof(lower))
        return false;
    for (size_t i = 0; i < password.size; i++)
        lower[i] = (char)tolower((unsigned char)password.data[i]);
    const struct text key = {lower, password.size};
    return is_short_piece_repeated(lower, password.size) || is_run(lower, password.size, 1) ||
           is_run(lower, password.size, -1) ||
           bsearch(&key, common, sizeof(common) / sizeof(*common), sizeof(*common), compare);
}
