/** Creates an entry for each of these names, one after the other. */
export async function byName<Name extends string, Made>(
  names: readonly Name[],
  make: (name: Name) => Promise<Made>,
): Promise<Record<Name, Made>> {
  const made: [Name, Made][] = []
  for (const name of names) made.push([name, await make(name)])
  return Object.fromEntries(made) as Record<Name, Made> // one for each name
}
