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
  /** Network IDs before the old one, from which the owner has moved to this account. */
  readonly earlierAddresses?: ReadonlySet<string>
}

/** Whether an address is one of the owner's: an old one, or the account that imports. */
export function isOwner({ user, oldAddress, earlierAddresses }: Owner, address: string): boolean {
  return address === user.address || address === oldAddress || earlierAddresses?.has(address) === true
}
