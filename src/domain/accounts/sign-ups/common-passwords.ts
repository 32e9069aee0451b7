/** The most used passwords with ten or more characters, in lower case. Shorter ones are refused anyway. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `0123456789 0987654321 1029384756 1111111111 1122334455 123123123123 1231231234 1234512345 123456123456 1234567890
  12345678901 123456789012 1234567891 123456789a 123456789q 1234567899 1234567890- 1234554321 123qweasdzxc 12qwaszx12
  147258369a 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx3edc 1qazxsw23edc 2222222222 5555555555 7777777777 9876543210 aaaaaaaaaa
  abc1234567 abcd123456 abcdefghij adminadmin administrator alexander1 asdfasdfasdf asdfghjkl1 asdfghjkl; azertyuiop
  basketball baseball123 bismillah1 butterfly1 changeme123 chocolate1 christopher computer123 cristina123 dragon1234
  elizabeth1 facebook123 football123 football12 freedom123 hello12345 helloworld iloveyou12 iloveyou123 iloveyousomuch
  jennifer12 jordan2323 letmein123 liverpool1 liverpoolfc login12345 lovelovelove manchester master1234 michael123
  mustang123 passw0rd12 passw0rd123 password00 password01 password10 password11 password12 password123 password1234
  password12345 password! password1! passwordpassword pokemon123 princess12 princess123 q1w2e3r4t5 q1w2e3r4t5y6
  qazwsxedcr qwer123456 qwerasdfzxcv qwerty1234 qwerty12345 qwerty123456 qwertyuiop qwertyuiop1 qwertyuiop123
  qwertzuiop secret1234 starwars123 sunshine12 sunshine123 superman12 superman123 test123456 testtest12 trustno1234
  welcome123 welcome1234 whatever12 zaq12wsxcde zxcvbnm123 zxcvbnm1234 zxcvbnmasd`.split(/\s+/),
)
