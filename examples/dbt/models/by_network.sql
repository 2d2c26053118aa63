select network, count(*) as quakes, max(magnitude) as strongest
from {{ source('lake', 'strong') }}
group by network
order by strongest desc
