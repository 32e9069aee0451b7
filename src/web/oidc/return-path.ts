const LONGEST = 2_000

/** A path of this pod to which a sign-in may return. Others are refused: a link to the sign-in page could lead anywhere. */
export function readReturnPath(text: string | undefined): string | undefined {
  return text !== undefined && text.length <= LONGEST && /^\/admin(?:[/?][\w\-./?=&%:~+,@]*)?$/.test(text)
    ? text
    : undefined
}
