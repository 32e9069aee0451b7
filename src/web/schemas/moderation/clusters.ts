import { Type } from 'typebox'
import { CLUSTER_STATES } from '../../../persistence/moderation/clusters.js'
import { Timestamp } from '../formats.js'
import { nullable } from '../references.js'
import { OperationSchema } from './pod-rule-imports.js'

export const ClusterState = Type.Enum([...CLUSTER_STATES], {
  description: '`cleaning` and `restoring`: a cleaning or its undo is in progress.',
})

const clusterFields = {
  id: Type.Integer(),
  kind: Type.Enum(['text', 'link', 'mentions', 'photo'], { description: 'What the items have in common.' }),
  label: Type.String({ description: 'The link or photo, the mentioned people, or the beginning of the first text.' }),
  state: ClusterState,
  case_id: nullable(Type.Integer()),
  items: Type.Integer(),
  authors: Type.Integer(),
  pods: Type.Integer(),
  first_at: Timestamp,
  last_at: Timestamp,
}

export const ClusterSchema = Type.Object(clusterFields, {
  $id: 'SpamCluster',
  description: 'Public posts and comments that have a text, link, photo or set of mentions in common.',
})

export const ClusterDetailsSchema = Type.Object(
  {
    ...clusterFields,
    operation: nullable(Type.Object(OperationSchema.properties, { description: 'The cleaning or undo in progress.' })),
    newest_items: Type.Array(
      Type.Object({
        type: Type.Enum(['post', 'comment']),
        guid: Type.String(),
        author: Type.String({ description: 'The address of the author.' }),
        author_guid: Type.String(),
        text: Type.String(),
        found_at: Timestamp,
        hidden: Type.Boolean(),
        retractable: Type.Boolean({ description: 'A local person may retract the item on all pods.' }),
      }),
      { description: 'At most 100.' },
    ),
    busiest_authors: Type.Array(
      Type.Object({
        guid: Type.String(),
        address: Type.String(),
        items: Type.Integer(),
        local: Type.Boolean(),
        followed: Type.Boolean({ description: 'A local user follows the author.' }),
        first_seen_at: Timestamp,
        ticked: Type.Boolean({
          description: 'An action is proposed: not for people whom a local user follows, or who are known for 30 days.',
        }),
      }),
      { description: 'At most 100, those with most items first.' },
    ),
  },
  { $id: 'WholeSpamCluster', description: 'A cluster with its newest items and its authors.' },
)

export const cleanBody = {
  hide: Type.Optional(Type.Boolean({ description: 'Hide all items. Default: false.' })),
  remove: Type.Optional(
    Type.Boolean({ description: 'Remove and retract the items that a local person may retract. Default: false.' }),
  ),
  filter: Type.Optional(
    Type.Boolean({ description: 'Add a filter that hides later content with the key. Default: false.' }),
  ),
  authors: Type.Optional(
    Type.Enum(['none', 'silence', 'block', 'lock'], {
      description:
        'What happens to the ticked authors. `block` silences the local ones, `lock` locks them and blocks the others. Default: none.',
    }),
  ),
  pods: Type.Optional(
    Type.Enum(['none', 'limited', 'blocked'], {
      description:
        'A rule for the pods of the ticked authors; not where local users have contacts, or where there is a rule. Default: none. More than one is for admins.',
    }),
  ),
  except: Type.Optional(
    Type.Array(Type.String(), { maxItems: 1_000, description: 'Guids of items, and of people whose items stay.' }),
  ),
}

export const CleanPreviewSchema = Type.Object(
  {
    hide: Type.Integer(),
    remove: Type.Integer(),
    people: Type.Integer({ description: 'The authors of these items.' }),
    authors: Type.Integer({ description: 'The authors who are restricted.' }),
    pods: Type.Array(Type.String(), { description: 'The domains of the new rules.' }),
    filter: Type.Unsafe<{ readonly kind: string; readonly value: string } | null>({
      anyOf: [Type.Object({ kind: Type.String(), value: Type.String() }), { type: 'null' }],
    }),
  },
  { $id: 'CleaningPreview', description: 'What a cleaning does.' },
)
