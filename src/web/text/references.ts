/** The names under which a text has addresses apart from its words, as in `[1]: https://pod.example`. */
export type References = ReadonlySet<string>

export const noReferences: References = new Set()

/** A line that says what a name stands for; `[Note]: done` is a line like any other. */
export const reference = /^ {0,3}\[([^[\]\n]{1,200})\]:[ \t]*[^\s/:#]*[/:#]\S*(?:[ \t]+["'(].*)?[ \t]*$/

export function readReferences(text: string): References {
  if (!text.includes(']:')) return noReferences
  return new Set(text.split(/\r\n?|\n/).flatMap((line) => nameIn(line) ?? []))
}

/** However it is written. */
export function referenceKey(name: string): string {
  return name.trim().replace(/\s+/g, ' ').toLowerCase()
}

function nameIn(line: string): string | undefined {
  const [, name] = reference.exec(line) ?? []
  return name === undefined ? undefined : referenceKey(name)
}
