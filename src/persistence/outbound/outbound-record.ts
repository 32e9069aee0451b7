import type { RecordKind } from '../../protocol/entities/registry.js'

/** The subject of a message to other pods: a record, or a change of a person without a record. */
export type OutboundRecord = RecordKind | 'profile' | 'contact' | 'account_deletion' | 'account_migration'

export type OutboundVerb = 'create' | 'retract'
