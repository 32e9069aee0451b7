const MAX_CHARACTERS = 2_000
const PATH = /^\/(?:admin|settings)(?:[/?][\w\-./?=&%:~+,@]*)?$/

/**
 * A path of this pod to which a sign-in or a proof of the password may return. Others are refused: a link to the sign-in page could
 * lead anywhere.
 */
export function readReturnPath(text: string | undefined): string | undefined {
  return text !== undefined && text.length <= MAX_CHARACTERS && PATH.test(text) ? text : undefined
}
