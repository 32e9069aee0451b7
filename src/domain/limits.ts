/** Texts of users, in characters as users count them, and the number of their parts. */
export const TEXT_LIMITS = {
  /** Posts, comments, messages and bios: what every pod of the network accepts. */
  textCharacters: 65_535,
  subjectCharacters: 255,
  /** Displayed name of a person. */
  nameCharacters: 32,
  /** Location and gender. */
  profileLineCharacters: 255,
  tagsOfPerson: 5,
  /** A poll question, a poll answer, the name of a place. */
  labelCharacters: 255,
  pollAnswers: 100,
  photosOfPost: 100,
  aspectNameCharacters: 20,
  tagCharacters: 255,
  recipientsOfConversation: 100,
  /** Minimum. */
  passwordCharacters: 10,
  /** Limits the cost of hashing. */
  passwordBytes: 128,
  /** People and tags stored with a text. */
  mentionsOfText: 100,
  tagsOfText: 100,
} as const
