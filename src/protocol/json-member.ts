/** The member of an object. Undefined: no such member, or no object. */
export function readMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name] // an object that has this member
}
