/** A row that belongs to one of the listed rows, such as a photo to its post. */
export interface OwnedItem {
  readonly ownerId: number
}

/** Groups items by the id of their owner and keeps their order. Null: there are no items. */
export function groupByOwner<Item extends OwnedItem>(
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
