import { Type } from 'typebox'
import { nullable } from '../references.js'

export const PodRuleImportSchema = Type.Object(
  {
    id: Type.Integer(),
    mode: Type.Enum(['keep', 'stricter', 'replace']),
    state: Type.Enum(['planned', 'applied', 'undone']),
    preview: Type.Object({
      add: Type.Integer(),
      change: Type.Integer(),
      covered: Type.Integer(),
      skip: Type.Integer(),
      chosen: Type.Integer({ description: 'Rows that are applied without `ids`.' }),
      contacts: Type.Integer({ description: 'Relations of local users, as pairs.' }),
    }),
    rows: Type.Array(
      Type.Object({
        id: Type.Integer(),
        domain: Type.String(),
        port: nullable(Type.Integer({ description: 'Null: every port.' })),
        severity: Type.String(),
        verdict: Type.Enum(['add', 'change', 'covered', 'skip']),
        fault: nullable(
          Type.String({
            description:
              'Why the row is skipped: `obfuscated`, `invalid`, `own_pod`, `too_broad`, `noop`, `severity` or `duplicate`.',
          }),
        ),
        chosen: Type.Boolean({
          description: 'False for rows that end relations of local users, and for covered ones.',
        }),
        step: Type.Enum(['planned', 'applied', 'skipped', 'undone', 'kept']),
        preview: Type.Object({ contacts: Type.Integer() }),
      }),
    ),
  },
  { $id: 'PodRuleImport', description: 'The plan of an import of rules, and what has become of each row.' },
)

export const OperationSchema = Type.Object(
  {
    id: Type.Integer(),
    kind: Type.String(),
    state: Type.Enum(['queued', 'running', 'done', 'failed', 'undone']),
    done: Type.Integer(),
    total: Type.Integer(),
    skipped: Type.Integer(),
    errors: Type.Array(Type.String()),
  },
  { $id: 'Operation', description: 'Long work, done in the background.' },
)
