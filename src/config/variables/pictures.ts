import { choice, folder, httpAddress, setting, text } from '../schemas.js'

export const PICTURE_VARIABLES = {
  UPLOADS_DIR: setting(
    folder,
    'Directory of pictures and of uploaded archives of accounts, shared by all web processes and all workers that serve the queue `photos`. Back it up with the database',
    { whenNotSet: '`uploads` in `DATA_DIR`', example: 'var/uploads' },
  ),
  STORAGE: setting(
    choice(['folder', 's3'], 'folder'),
    'Where pictures are stored: `folder` (`UPLOADS_DIR`), or `s3` (a bucket of an S3-compatible store, so that web and worker processes need no common folder, except for `IMPORTS=on`)',
  ),
  S3_ENDPOINT: setting(httpAddress, 'The address of the S3-compatible store, like `https://s3.example`', {
    whenNotSet: 'Amazon',
    example: 'https://s3.example',
  }),
  S3_REGION: setting(
    { type: 'string', minLength: 1, default: 'us-east-1', description: 'the name of a region' },
    'The region of the S3 store',
  ),
  S3_BUCKET: setting(
    {
      type: 'string',
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      description: 'the name of a bucket',
    },
    'An existing bucket of the S3 store',
    { example: 'pod' },
  ),
  S3_PREFIX: setting(
    {
      type: 'string',
      default: '',
      pattern: '^([A-Za-z0-9_.-]+/)*[A-Za-z0-9_.-]*$',
      description: 'a path like pod/ without a slash at the beginning',
    },
    'A prefix of all object names, like `pod/`',
    { example: 'pod/' },
  ),
  S3_ACCESS_KEY_ID: setting(
    text('the id of an access key'),
    'The key of the S3 store, with the permissions Get, Put, Delete and List',
  ),
  S3_SECRET_ACCESS_KEY: setting(text('the secret of an access key'), 'The secret of `S3_ACCESS_KEY_ID`'),
  S3_PATH_STYLE: setting(choice(['true', 'false']), 'Whether the bucket is part of the path instead of the host name', {
    whenNotSet: '`true` with `S3_ENDPOINT`',
    example: 'true',
  }),
  S3_DELIVERY: setting(
    choice(['proxy', 'redirect'], 'proxy'),
    '`proxy`: the pod serves the pictures. `redirect`: the pod redirects to the store, with a URL that is valid for 15 minutes',
  ),
  UPLOADS_BASE_URL: setting(
    httpAddress,
    'Where API responses and pages load pictures from: a CDN in front of the pod (`https://cdn.example`, with the paths of the pod) or of the bucket (with its path, `https://cdn.example/pod/images`). Other pods always get the address of this pod',
    { example: 'https://cdn.example' },
  ),
  UPLOADS_FALLBACK: setting(
    choice(['folder', 's3']),
    '`folder` or `s3`: a second store from which pictures are read while they move. See [operating.md](operating.md#pictures-in-s3)',
    { example: 'folder' },
  ),
  IMAGE_REDIRECT_URL: setting(
    httpAddress,
    'For a pod that was taken over: requests for pictures that this pod does not have are redirected to this address, `/uploads/images/x.jpg` to `{address}/uploads/images/x.jpg`',
    { example: 'https://pictures.example' },
  ),
} as const
