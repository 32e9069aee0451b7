/** A step of a take-over is refused or has failed. The message says why and what to do. */
export class TakeOverError extends Error {
  override name = 'TakeOverError'
}
