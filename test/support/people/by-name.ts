/** Creates an entry for each name, one after the other. */
export async function byName<Name extends string, Entry>(
  names: readonly Name[],
  create: (name: Name) => Promise<Entry>,
): Promise<Record<Name, Entry>> {
  const entries: [Name, Entry][] = []
  for (const name of names) entries.push([name, await create(name)])
  return Object.fromEntries(entries) as Record<Name, Entry> // one for each name
}
