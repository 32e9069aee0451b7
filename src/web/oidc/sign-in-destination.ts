/** Where the browser goes after the sign-in. */
export interface Destination {
  /** The pending request of a client. */
  readonly uid: string | undefined
  readonly returnTo: string | undefined
}

/** The page for a person who is closing the account. */
export const TO_KEEP_ACCOUNT: Destination = { uid: undefined, returnTo: '/settings/close' }

/** The path of a page of the sign-in that keeps the destination. */
export function withDestination(path: string, { uid, returnTo }: Destination): string {
  const query = new URLSearchParams({
    ...(uid !== undefined && { request: uid }),
    ...(returnTo !== undefined && { return_to: returnTo }),
  })
  return query.size === 0 ? path : `${path}?${query}`
}
