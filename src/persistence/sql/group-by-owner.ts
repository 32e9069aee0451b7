/** Part of something that is listed, and says of what. */
export interface Belonging {
  readonly ownerId: number
}

/** What is read for a whole list at once, by what it belongs to and in its order; null: there is nothing. */
export function byOwner<Item extends Belonging>(
  items: readonly Item[] | null = null,
): ReadonlyMap<number, readonly Item[]> {
  const groups = new Map<number, Item[]>()
  for (const item of items ?? []) {
    const group = groups.get(item.ownerId)
    if (group === undefined) groups.set(item.ownerId, [item])
    else group.push(item)
  }
  return groups
}
