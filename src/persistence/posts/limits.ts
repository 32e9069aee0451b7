/** Public posts for anonymous requests. */
export const PUBLIC_POST_LIMITS = {
  /** Newest posts on the page of a person, and for pods that have just discovered the person. */
  postsOfPerson: 15,
  /** Posts on the page of a tag and the page of all public posts. */
  postsOnListPage: 15,
  /** The oldest ones; each is rendered from Markdown. */
  commentsOnPage: 50,
  /** Characters of a comment, a profile and each post of a list: only this part is read, scanned and shown. */
  excerptCharacters: 2_000,
  /** People and posts mentioned on one page; each is looked up. */
  namesOnPage: 200,
} as const
