/** The size of an envelope as it was received, in UTF-8; all limits on messages and all byte counts use it. */
export function envelopeBytes(envelope: string): number {
  return Buffer.byteLength(envelope)
}
