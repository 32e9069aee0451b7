/** Descriptions of photos. */
export const ALT_TEXT_LIMITS = {
  /** Characters of a photo's description; of a longer one from another pod this many are shown. */
  altTextCharacters: 1_500,
} as const
