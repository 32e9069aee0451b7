/** Calls the function for each occurrence, with the literal and the index after its last character. */
export type SearchLiterals = (text: string, found: (literal: string, end: number) => void) => void

interface TrieNode {
  readonly children: Map<number, number>
  literal: string | undefined
}

/**
 * Builds an Aho-Corasick automaton: one pass over a text finds all literals, whatever their number. The edges are in one hash table
 * of integers, because a table of all states and characters would take hundreds of megabytes.
 */
export function compileLiterals(literals: Iterable<string>): SearchLiterals {
  const { nodes, classOfUnit, classes } = buildTrie(new Set(literals))
  const edges = hashEdges(nodes, classes)
  const { fallback, output } = linkSuffixes(nodes, edges)
  const firstStates = statesAfterRoot(nodes, classes)

  return (text, found) => {
    let state = ROOT
    for (let index = 0; index < text.length; index += 1) {
      const unitClass = classOfUnit[text.charCodeAt(index)] ?? 0
      let next = NONE
      while (state !== ROOT && next === NONE) {
        next = edges(state, unitClass)
        if (next === NONE) state = fallback[state] ?? ROOT
      }
      state = next === NONE ? (firstStates[unitClass] ?? ROOT) : next
      for (let at = output[state] ?? 0; at !== 0; at = output[fallback[at] ?? 0] ?? 0) {
        found(nodes[at]?.literal ?? '', index + 1)
      }
    }
  }
}

const ROOT = 0
const NONE = -1

/** The state after the first unit of a text, by its class: most units of a text are read in the root state. */
function statesAfterRoot([root]: readonly TrieNode[], classes: number): Int32Array {
  const states = new Int32Array(classes)
  for (const [unitClass, child] of root?.children ?? []) states[unitClass] = child
  return states
}

/** UTF-16 units that no literal has are class 0. */
function buildTrie(literals: ReadonlySet<string>) {
  const nodes: TrieNode[] = [{ children: new Map(), literal: undefined }]
  const classOfUnit = new Uint16Array(65_536)
  let classes = 1
  for (const literal of literals) {
    let state = 0
    for (let index = 0; index < literal.length; index += 1) {
      const unit = literal.charCodeAt(index)
      if (classOfUnit[unit] === 0) {
        classOfUnit[unit] = classes
        classes += 1
      }
      const { children } = nodes[state] as TrieNode // states are indexes of nodes
      const unitClass = classOfUnit[unit] as number // set above
      const child = children.get(unitClass) ?? nodes.push({ children: new Map(), literal: undefined }) - 1
      children.set(unitClass, child)
      state = child
    }
    const last = nodes[state]
    if (last !== undefined && state !== 0) last.literal = literal
  }
  return { nodes, classOfUnit, classes }
}

/** Open addressing, at most half full. */
function hashEdges(nodes: readonly TrieNode[], classes: number): (state: number, unitClass: number) => number {
  const bits = Math.max(4, Math.ceil(Math.log2(nodes.length * 2)))
  const mask = 2 ** bits - 1
  const keys = new Int32Array(mask + 1).fill(NONE)
  const targets = new Int32Array(mask + 1)
  const slotOf = (key: number) => {
    let slot = (Math.imul(key, 0x9e3779b1) >>> (32 - bits)) & mask
    while (keys[slot] !== NONE && keys[slot] !== key) slot = (slot + 1) & mask
    return slot
  }
  for (const [state, { children }] of nodes.entries()) {
    for (const [unitClass, child] of children) {
      const key = state * classes + unitClass
      const slot = slotOf(key)
      keys[slot] = key
      targets[slot] = child
    }
  }
  return (state, unitClass) => {
    const slot = slotOf(state * classes + unitClass)
    return keys[slot] === NONE ? NONE : (targets[slot] as number)
  }
}

/** The state of the longest proper suffix of each state, and the nearest state on that way, itself included, that ends a literal. */
function linkSuffixes(nodes: readonly TrieNode[], edges: (state: number, unitClass: number) => number) {
  const fallback = new Int32Array(nodes.length)
  const output = new Int32Array(nodes.length)
  const queue = [0]
  for (const state of queue) {
    for (const [unitClass, child] of nodes[state]?.children ?? []) {
      queue.push(child)
      let suffix = state
      let next = NONE
      while (next === NONE && suffix !== 0) {
        suffix = fallback[suffix] ?? 0
        next = edges(suffix, unitClass)
      }
      fallback[child] = next === NONE ? 0 : next
      output[child] = nodes[child]?.literal === undefined ? (output[fallback[child] ?? 0] ?? 0) : child
    }
  }
  return { fallback, output }
}
