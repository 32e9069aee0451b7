/**
 * A value that a plan cannot be made for: whoever it is, however far down the list and however long one that is handed over, the
 * server keeps the one plan it has. What it sees in a statement it may take for a reason to plan anew each time, which takes longer
 * than to read a page, and several times as long as to store a message.
 */
export function opaqueParam(place: string, type: string): string {
  return `(select ${place}::${type})`
}
