interface Entry<Value> {
  readonly value: Value
  readonly until: number
}

/** Values with an end of validity; beyond `entries` the oldest one is dropped. */
export class ExpiringCache<Value> {
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #limit: number
  readonly #now: () => number

  constructor(entries: number, now: () => number = () => performance.now()) {
    this.#limit = entries
    this.#now = now
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.until > this.#now()) return entry?.value
    this.#entries.delete(key)
    return undefined
  }

  set(key: string, value: Value, milliseconds: number): void {
    this.#entries.delete(key) // the new entry is the youngest
    this.#entries.set(key, { value, until: this.#now() + milliseconds })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#limit && oldest !== undefined) this.#entries.delete(oldest)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}
