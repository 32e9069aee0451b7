/** What becomes of a message with this fault: it ends, it is tried again, or it is parked until what it needs is here. */
export type Outcome = 'drop' | 'retry' | 'wait'

/** Every way in which a message can be wrong or early, and what follows (FEDERATION.md, "Faults"). */
export const outcomeOf = {
  InvalidEnvelope: 'drop',
  InvalidDataType: 'drop',
  InvalidEncoding: 'drop',
  InvalidAlgorithm: 'drop',
  InvalidSignature: 'drop',
  InvalidPayload: 'drop',
  SenderKeyNotFound: 'drop',
  DecryptionFailed: 'drop',
  UnknownEntity: 'drop',
  ValidationError: 'drop',
  PublicKeyNotFound: 'drop',
  SignatureVerificationFailed: 'drop',
  InvalidSender: 'drop',
  NotPublic: 'drop',
  RecipientMismatch: 'drop',
  ParentNotLocal: 'drop',
  InvalidAuthor: 'drop',
  AuthorIgnored: 'drop',
  NotAllowed: 'drop',
  RecipientClosed: 'drop',
  DiscoveryFailed: 'retry',
  NotFetchable: 'wait',
  TargetNotFound: 'wait',
  ConversationNotFound: 'wait',
} as const satisfies Record<string, Outcome>

export type ProtocolFault = keyof typeof outcomeOf

/** What another pod sent is wrong, or refers to something that is not here. */
export class ProtocolError extends Error {
  override name = 'ProtocolError'
  readonly fault: ProtocolFault

  constructor(fault: ProtocolFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}
