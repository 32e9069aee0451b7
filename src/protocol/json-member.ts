/** What others call so in their JSON; undefined where it is not there, or where this is no object at all. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name] // an object that has this member
}
