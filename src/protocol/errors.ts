/** How a message with this fault is handled: dropped, retried, or deferred until the missing entity arrives. */
export type FaultHandling = 'drop' | 'retry' | 'wait'

/** All faults of messages and how each is handled (FEDERATION.md, "Faults"). */
export const HANDLING_OF_FAULT = {
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
  Moderated: 'drop',
  NotAllowed: 'drop',
  RecipientClosed: 'drop',
  Filtered: 'drop',
  DiscoveryFailed: 'retry',
  NotFetchable: 'wait',
  TargetNotFound: 'wait',
  ConversationNotFound: 'wait',
} as const satisfies Record<string, FaultHandling>

export type ProtocolFault = keyof typeof HANDLING_OF_FAULT

/** Faults that another attempt or a later message can remove. When the attempts are over, they are faults of dead letters. */
export type TemporaryFault = {
  [Fault in ProtocolFault]: (typeof HANDLING_OF_FAULT)[Fault] extends 'drop' ? never : Fault
}[ProtocolFault]

/** A message or document of another pod is invalid, or refers to an unknown entity. */
export class ProtocolError extends Error {
  override name = 'ProtocolError'
  readonly fault: ProtocolFault

  constructor(fault: ProtocolFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}
