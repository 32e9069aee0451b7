/** Lists of one account that are read as a whole. Accounts that had more before keep them. */
export const LIST_LIMITS = {
  /** Nobody has hundreds. */
  aspects: 1_000,
  /** Each one is searched for new posts of the main stream. */
  followedTags: 2_000,
} as const

/** Texts of users, in characters as users count them, and the number of their parts. */
export const TEXT_LIMITS = {
  /** Posts, comments, messages and bios: what every pod of the network accepts. */
  textCharacters: 65_535,
  /** The column of other pods has 255 characters. */
  subjectCharacters: 255,
  /** Displayed name of a person. */
  nameCharacters: 32,
  /** Location and gender. */
  profileLineCharacters: 255,
  /** Limit of diaspora*. */
  tagsOfPerson: 5,
  /** A poll question, a poll answer, the name of a place. */
  labelCharacters: 255,
  /** A poll with all answers fits in one message. */
  pollAnswers: 100,
  /** Each photo is an entity of the message and a picture of the page. */
  photosOfPost: 100,
  /** Limit of diaspora*. */
  aspectNameCharacters: 20,
  /** The column of other pods has 255 characters. */
  tagCharacters: 255,
  /** Each recipient gets a copy that is encrypted for them. */
  recipientsOfConversation: 100,
  /** Minimum. */
  passwordCharacters: 10,
  /** Limits the cost of hashing. */
  passwordBytes: 128,
  /** People and tags stored with a text. */
  mentionsOfText: 100,
  /** Each tag is a row and a lookup. */
  tagsOfText: 100,
} as const
