import type { RecordKind } from '../../protocol/entities/registry.js'

/** What a message to other pods is about: a record, or a change of a person that is no record of its own. */
export type OutboundRecord = RecordKind | 'profile' | 'contact' | 'account_deletion' | 'account_migration'

export type OutboundVerb = 'create' | 'retract'
