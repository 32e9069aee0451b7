/**
 * Keeps one state for each owner: a database, the queues or another open service. A state is opened at its first use and
 * freed with its owner. For caches, shared calls and budgets of a process only: nothing in a state is closed, and all of it may be lost.
 */
export function stateByOwner<Owner extends object, State>(): (owner: Owner, open: () => State) => State {
  const states = new WeakMap<Owner, State>()
  return (owner, open) => {
    const existing = states.get(owner)
    if (existing !== undefined) return existing
    const state = open()
    states.set(owner, state)
    return state
  }
}
