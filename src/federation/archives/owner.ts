/** The account that imports. */
export interface ImportingUser {
  readonly userId: number
  readonly personId: number
  readonly username: string
  readonly address: string
}

interface Owner {
  readonly user: Pick<ImportingUser, 'address'>
  readonly oldAddress: string
}

/** Whether an address is one of the owner's: the old one, or the account that imports. */
export function isOwner({ user, oldAddress }: Owner, address: string): boolean {
  return address === user.address || address === oldAddress
}
