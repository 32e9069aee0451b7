interface Room<Value> {
  readonly entries: number
  /** Together, each as large as `sizeOf` says. */
  readonly bytes?: number
  readonly sizeOf?: (value: Value) => number
}

/** A map that never outgrows its room: what was set longest ago is forgotten for what is new. */
export interface BoundedMap<Key, Value> {
  get(key: Key): Value | undefined
  /** What was known before is as new as the rest. */
  set(key: Key, value: Value): void
  delete(key: Key): void
}

export function openBoundedMap<Key, Value>(room: Room<Value>): BoundedMap<Key, Value> {
  const { entries, bytes = Number.POSITIVE_INFINITY, sizeOf = () => 0 } = room
  const known = new Map<Key, Value>()
  let taken = 0

  function forget(key: Key): void {
    const value = known.get(key)
    if (value === undefined) return
    taken -= sizeOf(value)
    known.delete(key)
  }

  return {
    get: (key) => known.get(key),
    set(key, value) {
      forget(key)
      known.set(key, value)
      taken += sizeOf(value)
      for (const oldest of known.keys()) {
        if (known.size <= entries && taken <= bytes) return
        forget(oldest)
      }
    },
    delete: forget,
  }
}
