export interface XmlElement {
  /** The local name, without prefix. */
  readonly name: string
  readonly namespace: string
  /** Attributes by qualified name, with namespace declarations. */
  readonly attributes: ReadonlyMap<string, string>
  /** Elements only, in document order. */
  readonly children: readonly XmlElement[]
  /** All text below the element in document order, untrimmed. */
  readonly text: string
}

/** An element under construction. */
export class Element implements XmlElement {
  readonly name: string
  readonly namespace: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: Element[] = []
  readonly #content: (string | Element)[] = []

  constructor(name: string, namespace = '', attributes = noAttributes) {
    this.name = name
    this.namespace = namespace
    this.attributes = attributes
  }

  get text(): string {
    const [first] = this.#content
    if (this.#content.length === 1 && typeof first === 'string') return first
    return this.#content.map((part) => (typeof part === 'string' ? part : part.text)).join('')
  }

  append(child: Element): void {
    this.children.push(child)
    this.#content.push(child)
  }

  appendText(run: string): void {
    this.#content.push(run)
  }
}

const noAttributes: ReadonlyMap<string, string> = new Map()
